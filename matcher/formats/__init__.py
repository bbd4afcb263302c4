"""Files of events and of filters (docs/files.md): JSON lines, CSV, Parquet and Arrow IPC.

``files`` chooses by a file's ending between ``jsonlines`` (whose attributes ``jsondata`` decodes),
``csvfiles``, ``parquetfiles`` and ``ipcfiles`` (``pieces``, ``tabular`` and ``arrowcolumns`` are
what Arrow's forms share); ``intake`` counts what is no event. ``printing`` and ``printed`` write
events; ``matchfiles`` are those of ``rexmq match``.
"""
