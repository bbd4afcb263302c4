"""The choice of ``auto``: a model of ``costs``, and the ``chooser`` that measures.

``spread`` estimates how much of a history the windows of a match let pass.
"""
