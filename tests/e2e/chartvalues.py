"""Sets of chart values for all tests of the chart."""

from __future__ import annotations

from typing import Any

import pytest

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
OWN_CERTIFICATE = {"certificate": {"existingSecret": "ours", "caBundle": CA}}
PROMETHEUS: dict[str, Any] = {
    "config": {
        "server": {"port": 8443, "drain": "1m30s", "grace": 7.5},
        "source": {
            "kind": "prometheus",
            "prometheus": {
                "url": "https://prometheus.monitoring.svc:9090",
                "bearer_token_file": "/etc/prometheus-token/token",
                "max_bytes": 268435456,
            },
        },
    },
    "extraVolumes": [{"name": "token", "secret": {"secretName": "token"}}],
    "extraVolumeMounts": [{"name": "token", "mountPath": "/etc/prometheus-token"}],
}
SCHEDULING = {
    "fullnameOverride": "gma",
    "image": {
        "repository": "example/gma",
        "tag": "test",
        "digest": DIGEST,
    },
    "imagePullSecrets": [{"name": "pull"}],
    "replicas": 3,
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "serviceAccount": {"annotations": {"example/role": "reader"}},
    "podLabels": {"team": "ml"},
    "podAnnotations": {"example/note": "1"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
}
RULES: dict[str, Any] = {
    "rules": {"existingConfigMap": {"name": "prometheus-adapter", "key": "rules.yaml"}},
    "config": {"source": {"prometheus": {"url": "http://prometheus.monitoring.svc:9091"}}},
}
OWN_RULES: dict[str, Any] = {
    "rules": {
        "custom": [
            {
                "seriesQuery": 'queue_length{namespace!="",pod!=""}',
                "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
                "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
            }
        ],
        "external": [{"seriesQuery": "backlog", "metricsQuery": "max(<<.Series>>)"}],
        "resource": {
            name: {
                "containerQuery": f"sum({name}_use{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)",
                "nodeQuery": f"sum({name}_node{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)",
                "resources": {"template": "<<.Resource>>"},
                "containerLabel": "container",
            }
            for name in ("cpu", "memory")
        },
    },
    "externalMetrics": {"enabled": True},
    "resourceMetrics": {"enabled": True},
    "config": {"source": {"prometheus": {"url": "http://prometheus.monitoring.svc:9091"}}},
}
DELEGATION: dict[str, Any] = {
    "config": {
        "delegation": {
            "delegates": [
                {
                    "name": "keda",
                    "service": {"namespace": "keda", "name": "keda-metrics", "port": 6443},
                    "groups": ["external"],
                    "ca": CA,
                },
                {
                    "name": "old",
                    "service": {"namespace": "monitoring", "name": "prometheus-adapter"},
                    "insecure_skip_tls_verify": True,
                },
            ]
        }
    },
    "externalMetrics": {"enabled": True},
    "networkPolicy": {"enabled": True},
}
EXTERNAL_METRICS = {"externalMetrics": {"enabled": True}}
KEDA = {
    "keda": {"enabled": True, "headlessService": True, "scaledObjects": True},
    "config": {"keda": {"port": 6100, "max_connection_age": "1m"}},
}
NODEPOOL = {
    "nodepool": {
        "enabled": True,
        "apply": True,
        "namespaces": ["charted"],
        "replicas": 3,
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "priorityClass": {"create": False},
        "resources": {"requests": {"cpu": "10m"}},
    },
    "config": {
        "nodepool": {
            "port": 9090,
            "deletion_cost": True,
            "lease": {"name": "ours"},
        }
    },
}
NETWORK = {
    "networkPolicy": {
        "enabled": True,
        "apiServer": {
            "from": [{"ipBlock": {"cidr": "192.0.2.0/28"}}],
            "to": [{"ipBlock": {"cidr": "192.0.2.8/32", "except": []}}],
            "ports": [8443],
        },
        "keda": {"from": [{"podSelector": {"matchLabels": {"app": "keda-operator"}}}]},
        "prometheus": {"from": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}]},
        "exporterPorts": [9400, "metrics"],
        "inferencePorts": [8000],
        "source": {"to": [{"ipBlock": {"cidr": "fd00::/8"}}], "ports": [9090]},
        "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 6443}]}],
        "egress": [{"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}]}],
    },
    "nodepool": {"enabled": True},
    "config": {
        "source": {
            "scrape": {
                "exporters": [{"name": "own", "selector": "app=own", "port": 9500}],
                "targets": [{"url": "http://192.0.2.9:9600/metrics"}],
                "inference": {"namespaces": ["ml"], "port": 9700, "port_names": ["vllm"]},
            }
        },
        "nodepool": {"history": {"prometheus_url": "http://prometheus.monitoring.svc/a"}},
    },
}
NETWORK_OF_A_STORE = {
    "networkPolicy": {"enabled": True},
    "config": {"source": PROMETHEUS["config"]["source"]},
}
NETWORK_OF_A_CLOUD = {
    "networkPolicy": {"enabled": True},
    "config": {
        "source": {
            "kind": "prometheus",
            "prometheus": {
                "url": "https://monitor.example/prometheus",
                "auth": {"kind": "azure"},
            },
        }
    },
}
MONITOR = {
    "serviceMonitor": {
        "enabled": True,
        "interval": "15s",
        "scrapeTimeout": "5s",
        "labels": {"release": "kube-prometheus-stack"},
        "metricRelabelings": [{"action": "labeldrop", "regex": "job"}],
        "tokenSecret": {"name": "reader", "key": "token"},
        "reader": {"serviceAccount": {"name": "prometheus", "namespace": "watch"}},
    },
    "nodepool": {"enabled": True},
}
HPA_READER = {
    "hpaReader": {
        "create": True,
        "subjects": [
            {
                "kind": "User",
                "name": "system:kube-controller-manager",
                "apiGroup": "rbac.authorization.k8s.io",
            }
        ],
    },
    "externalMetrics": {"enabled": True},
}
UNWATCHED = {
    "config": {
        "cluster": {"services": False, "nodes": False},
        "authentication": {"configmap": False, "token_review": False},
        "authorization": {"subject_access_review": False},
        "nodepool": {"jobs": False},
    },
    "nodepool": {"enabled": True},
    "view": {"enabled": False},
}
SELF_SIGNED = {
    "certificate": {
        "selfSigned": {
            "validDays": 30,
            "caValidDays": 60,
            "schedule": "0 3 * * 1",
            "resources": {"requests": {"cpu": "10m"}},
        }
    },
    "hooks": {"enabled": False, "resources": {"requests": {"cpu": "10m"}}},
}
CERT_MANAGER = {"certificate": {"mode": "certManager"}, "serviceMonitor": {"enabled": True}}
CERT_MANAGERS_ISSUER = {
    "certificate": {
        "mode": "certManager",
        "certManager": {"issuerRef": {"name": "ca", "kind": "ClusterIssuer"}},
    },
    "externalMetrics": {"enabled": True},
}
WATCHED = {
    "alerts": {
        "enabled": True,
        "labels": {"release": "kube-prometheus-stack"},
        "ruleLabels": {"team": "ml"},
        "selector": 'cluster="a"',
        "rules": {
            "GpuMetricsAdapterCertificateExpiring": {"threshold": 86400},
            "GpuNodepoolBudgetExhausted": {"disabled": True},
            "GpuMetricsAdapterSourceDown": {"for": "1h", "severity": "info"},
        },
        "runbookUrl": "https://runbooks.example/gpu",
        "extra": [{"alert": "Own", "expr": "vector(1) > 0"}],
    },
    "dashboard": {
        "enabled": True,
        "labels": {"grafana": "yes"},
        "annotations": {"folder": "GPUs"},
        "namespace": "charted",
    },
    "nodepool": {"enabled": True},
}
EVERYTHING = {
    "serviceMonitor": {"enabled": True},
    "alerts": {"enabled": True},
    "dashboard": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "hpaReader": {"create": True},
    "nodepool": {"enabled": True, "apply": True},
    "externalMetrics": {"enabled": True},
    "keda": {"headlessService": True, "scaledObjects": True},
}
RESOURCE_METRICS: dict[str, Any] = {
    "resourceMetrics": {"enabled": True},
    "config": {
        "rules": {"file": "/etc/rules/config.yaml"},
        "source": {"prometheus": {"url": "http://prometheus:9090"}},
    },
    "hpaReader": {"create": True},
}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
}
CONVENTIONS: dict[str, Any] = {
    "nameOverride": "conventional",
    "fullnameOverride": "ours",
    "namespaceOverride": "charted",
    "commonLabels": {"team": "ml", "app.kubernetes.io/version": "mine"},
    "commonAnnotations": {"example/owner": "ml"},
    "podLabels": {"team": "gpu"},
    "image": {"registry": "registry.example:5000", "repository": "team/gma"},
    "imagePullSecrets": [{"name": "pull"}],
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}},
    "revisionHistoryLimit": 0,
    "service": {"annotations": {"example/topology": "auto"}},
    "dnsPolicy": "Default",
    "dnsConfig": {"searches": ["gpu.example"], "options": [{"name": "ndots", "value": "1"}]},
    "env": [
        {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
    "extraArgs": ["--log-level", "debug"],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "initContainers": [
        {"name": "first", "image": "busybox", "securityContext": RESTRICTED},
    ],
    "sidecars": [
        {
            "name": "beside",
            "image": "busybox",
            "securityContext": RESTRICTED,
            "resources": {"requests": {"cpu": "1m"}},
        }
    ],
    "podSecurityContext": {"supplementalGroups": [1000650000], "fsGroup": None},
    "securityContext": {"privileged": False, "runAsUser": 65532},
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
        }
    ],
    "serviceAccount": {"name": "serving", "annotations": {"example/role": "reader"}},
    "nodepool": {
        "enabled": True,
        "apply": True,
        "serviceAccount": {"name": "pooling", "annotations": {"example/role": "writer"}},
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    },
    "certificate": {
        "selfSigned": {
            "serviceAccount": {"name": "renewing"},
            "nodeSelector": {"pool": "jobs"},
            "tolerations": [{"key": "jobs", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
        }
    },
    "hooks": {"serviceAccount": {"name": "removing"}, "nodeSelector": {"pool": "hooks"}},
    "tests": {"serviceAccount": {"name": "testing"}},
    "nodeSelector": {"pool": "system"},
    "serviceMonitor": {"enabled": True, "labels": {"team": "watch"}},
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "charted"},
            "data": {"SERVICE": '{{ include "gpu-metrics-adapter.fullname" . }}'},
        },
        (
            "apiVersion: v1\nkind: ConfigMap\n"
            "metadata: {name: {{ .Release.Name }}-more, namespace: charted}\n"
        ),
    ],
}
ACCOUNTS: dict[str, Any] = {
    "rbac": {"create": False},
    "serviceAccount": {"create": False, "name": "serving"},
    "nodepool": {
        "enabled": True,
        "apply": True,
        "serviceAccount": {"create": False, "name": "pooling"},
    },
    "certificate": {"selfSigned": {"serviceAccount": {"create": False, "name": "renewing"}}},
    "hooks": {"serviceAccount": {"create": False, "name": "removing"}},
    "tests": {"serviceAccount": {"create": False, "name": "testing"}},
}
HOST_NETWORK: dict[str, Any] = {"hostNetwork": {"enabled": True}, "keda": {"headlessService": True}}
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a supplied certificate": OWN_CERTIFICATE,
    "without APIServices": {"apiServices": {"create": False}},
    "prometheus as the source": PROMETHEUS,
    "every value of scheduling": SCHEDULING,
    "external metrics": EXTERNAL_METRICS,
    "resource metrics": RESOURCE_METRICS,
    "every value of KEDA": KEDA,
    "without the view API": {"view": {"enabled": False}},
    "without KEDA": {"keda": {"enabled": False}},
    "the node-pool controller, dry": {"nodepool": {"enabled": True}},
    "every value of the node-pool controller": NODEPOOL,
    "a network policy": {"networkPolicy": {"enabled": True}},
    "every value of the network policies": NETWORK,
    "a network policy and Prometheus as the source": NETWORK_OF_A_STORE,
    "a network policy and a cloud as the source": NETWORK_OF_A_CLOUD,
    "every value of the monitors": MONITOR,
    "monitors and a supplied certificate": OWN_CERTIFICATE | {"serviceMonitor": {"enabled": True}},
    "the reader of an old cluster": HPA_READER,
    "as little as possible is watched": UNWATCHED,
    "every value of a self-signed certificate": SELF_SIGNED,
    "cert-manager": CERT_MANAGER,
    "an issuer of cert-manager's": CERT_MANAGERS_ISSUER,
    "every value of the alerts and the dashboard": WATCHED,
    "rules of prometheus-adapter": RULES,
    "rules in values": OWN_RULES,
    "delegates": DELEGATION,
    "every convention of other charts": CONVENTIONS,
    "accounts and roles of the user": ACCOUNTS,
    "the network of the nodes": HOST_NETWORK,
    "all features at once": EVERYTHING,
    "all features, with a long name": EVERYTHING | {"fullnameOverride": "a" * 63},
}
every_value_set = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
