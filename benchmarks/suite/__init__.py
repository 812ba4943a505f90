"""The benchmarks that asv runs, and the cases that they share with the scripts beside them."""
