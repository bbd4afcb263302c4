"""Memory of the arrays that kernels work on, and how it grows."""
