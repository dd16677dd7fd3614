"""Sweeps: every choice of a kernel an axis, on one machine or on a cluster, and records of what was measured.

    tilewright sweep kernels.py:attention --shapes shapes.toml --axis 'layout(p)' --axis stages=2..5 --axis warps
        -o records/

axes.py         what may vary, as a person writes it; expressions.py constraints, without eval
shapes.py       the launches that are measured
samplers.py     which candidates, in which order
station.py      a process that measures on one device
pool.py         many of them; workers.py those of this host, cluster.py those of a Dask cluster
artefacts.py    what one worker compiles for another one
run.py          the sweep itself
records.py      the file of measurements
page.py         a page of HTML
fit.py          constants of the cost model from records
command.py      the commands sweep, records and fit; options.py their options
"""
