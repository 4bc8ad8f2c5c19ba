"""Tests of latency promises."""
