"""Upkeep of an installation from outside its pods: certificates, and what an uninstall leaves.

``gpu-metrics-adapter maintain certificates`` is run by the chart's CronJob, ``maintain
unregister`` by its hook. docs/decisions/0006-a-job-renews-the-certificates.md says why.
"""
