"""A broker's tables of a tree, and what crosses its links (thesis 7.3.3, 7.3.4, 7.3.6).

``branch`` is one neighbour in the tree, with what is wanted beyond it (``filters``, ``demand``) but
for filters that others cover (``filter_cover``). ``shared_batches`` is what goes up several trees
at once. ``deferred_watermarks`` are those that a neighbour may have to be told yet.
"""
