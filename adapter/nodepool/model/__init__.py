"""Immutable records that several stages share."""
