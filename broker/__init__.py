"""The live host of the protocol core: ZeroMQ and the wall clock, the clients, the command line."""
