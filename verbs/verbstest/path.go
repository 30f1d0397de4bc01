package verbstest

import "rdma_exporter/verbs"

// path is the way from port 1 of a device to itself.
type path struct {
	ah  verbs.AHAttr
	mtu int
}

// path returns the way from port 1 back to it, or an error that says why it has none.
func (d *device) path() (path, error) {
	d.b.t.Helper()
	port, err := d.QueryPort(1)
	if err != nil {
		return path{}, err
	}
	table, err := d.GIDTable()
	if err != nil {
		return path{}, err
	}
	list, err := verbs.ToSelf(1, port, table)
	if err != nil {
		return path{}, err
	}
	return path{ah: list[0], mtu: port.ActiveMTU}, nil
}

// mustPath is path for a device whose port is active.
func (d *device) mustPath() path {
	d.b.t.Helper()
	return must(d.path())(d.b.t, "the port is active, but there is no way to it")
}
