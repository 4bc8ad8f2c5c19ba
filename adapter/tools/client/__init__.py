"""The base of the user's tools: access to a cluster with the user's kubeconfig, output and options.

    async with cluster(options) as api:
        pods = await api.list(f"{VIEW}/namespaces/{api.namespace}/gpupods")

A tool reads the cluster through the API server with the caller's rights. Each failure is a
:class:`~adapter.tools.client.errors.ClientError`: one line that names the thing and the next step.
"""
