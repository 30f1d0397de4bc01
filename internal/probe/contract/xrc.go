package contract

import "rdma_exporter/verbs"

// fewSizes returns the first of some sizes.
func fewSizes[T any](list []T) []T { return list[:min(3, len(list))] }

// xrcDomain opens a domain, if the device says that it has extended reliable connections.
func (j *judge) xrcDomain() (verbs.XRCD, error) {
	if !j.Attr.XRC {
		return nil, notSupported("the device does not say that it has XRC (IBV_DEVICE_XRC)")
	}
	if n := j.Attr.Limits.MaxSRQ; n <= 0 {
		return nil, notSupported("the device says max_srq %d", n)
	}
	var x verbs.XRCD
	// The kernel may have it, and the library not.
	err := j.refused(func() (err error) {
		x, err = j.XRCD()
		return err
	})
	if err != nil {
		return nil, cannot("open an XRC domain", err)
	}
	return x, nil
}

func xrcAtLeastRequested(j *judge) error {
	j.asks("ibv_open_xrcd without a file, ibv_create_srq_ex (IBV_SRQT_XRC) with several max_wr×max_sge, ibv_create_qp_ex of an XRC_RECV QP, and of XRC_SEND QPs with several sizes ("+qpTextMeans+")",
		"every size is written back as at least what was asked for, and all can be destroyed, the domain last")
	x, err := j.xrcDomain()
	if err != nil {
		return err
	}
	pd, err := j.pd()
	if err != nil {
		return err
	}
	cq, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	var c compared
	for _, asked := range fewSizes(srqSizes(j.Attr.Limits)) {
		var q verbs.SRQ
		err := j.refused(func() (err error) {
			q, err = j.XRCSRQ(x, pd, cq, asked)
			return err
		})
		if err != nil {
			return cannot("create an XRC SRQ of "+srqText(asked), err)
		}
		given := q.Created()
		c.add(shortfalls(srqFigures(asked, given, given)...), "SRQ %s→%s", srqText(asked), srqText(given))
	}
	err = j.refused(func() error {
		_, err := j.XRCRecvQP(x)
		return err
	})
	if err != nil {
		return cannot("create an XRC_RECV QP", err)
	}
	for _, asked := range fewSizes(qpSizes(j.Attr.Limits)) {
		asked.MaxRecvWR, asked.MaxRecvSGE = 0, 0 // it sends only
		var q verbs.XRCQP
		err := j.refused(func() (err error) {
			q, err = j.XRCSendQP(x, pd, cq, asked)
			return err
		})
		if err != nil {
			return cannot("create an XRC_SEND QP of "+qpText(asked), err)
		}
		given := q.Created()
		c.add(shortfalls(qpFigures(asked, given, given)...), "XRC_SEND QP %s→%s", qpText(asked), qpText(given))
	}
	c.conclude(j, "asked→written back")
	return nil
}
