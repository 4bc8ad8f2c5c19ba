"""Samples become device series: which device a sample is about, and whether its number is valid."""
