"""Compiled kernels: arrays in, arrays out. They know no estimator and no table."""
