"""Detection on a GPU. Nothing of this package is imported unless a device is asked for."""
