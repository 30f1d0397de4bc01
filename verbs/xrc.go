package verbs

// An XRCD is a domain of extended reliable connections (struct ibv_xrcd): shared receive
// queues to which messages for any of its receiving QPs can go.
type XRCD interface {
	// CreateSRQ creates an SRQ of the domain, whose receives complete on a CQ
	// (ibv_create_srq_ex with IBV_SRQT_XRC).
	CreateSRQ(PD, CQ, SRQAttr) (SRQ, error)
	// CreateRecvQP creates a QP that receives for the SRQs of the domain
	// (ibv_create_qp_ex with IBV_QPT_XRC_RECV).
	CreateRecvQP() (XRCQP, error)
	// CreateSendQP creates a QP that sends to the SRQs of any domain (ibv_create_qp_ex with
	// IBV_QPT_XRC_SEND).
	CreateSendQP(PD, CQ, QPCap) (XRCQP, error)
	// Close closes the domain (ibv_close_xrcd), which a device may refuse while there is
	// something in it.
	Close() error
}

// An XRCQP is a queue pair of extended reliable connections. Here it can be created and
// destroyed, and nothing sent over it.
type XRCQP interface {
	// Number returns qp_num.
	Number() uint32
	// Created returns the sizes that ibv_create_qp_ex wrote back; those of a receiving QP,
	// which has no queues, mean nothing.
	Created() QPCap
	// Close destroys the QP (ibv_destroy_qp).
	Close() error
}
