"""Maintenance of an installation from outside its pods: certificates, and cleanup at uninstall.

The chart's CronJob runs ``gpu-metrics-adapter maintain certificates``, its hook ``maintain
unregister``. docs/decisions/0006-a-job-renews-the-certificates.md gives the reasons.
"""
