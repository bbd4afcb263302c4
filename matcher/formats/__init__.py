"""Files of events and of filters (docs/files.md): JSON, CSV, Parquet and Arrow IPC.

``files`` chooses by a file's ending between ``jsonlines`` (whose attributes ``jsondata`` decodes)
and ``jsonarrays``, ``csvfiles`` and ``tsvfiles``, ``parquetfiles`` and ``ipcfiles`` (``pieces``,
``tabular`` and ``arrowcolumns`` are what Arrow's forms share). All of them go by a ``layout``,
which column is what, and by a ``timeform``, how times are written; ``intake`` counts what is no
event.
``printing`` and ``printed`` write events; ``matchfiles`` are those of ``rexmq match``.
"""
