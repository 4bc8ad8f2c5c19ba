"""Fitting and studying the forecast of nodepool, on recorded load. load/ has the benchmarks."""
