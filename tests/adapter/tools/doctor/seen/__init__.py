"""HPAs, ScaledObjects and workloads in the shapes of public manifests, with what doctor says."""
