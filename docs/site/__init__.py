"""The documentation as a site: README.md, the pages of docs/, the chart's and the benchmarks'."""
