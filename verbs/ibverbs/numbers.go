//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import "rdma_exporter/verbs"

// Package verbs numbers its constants as verbs.h does. The compiler holds it to
// that: a false among these keys is a duplicate of the first.
var _ = map[bool]struct{}{
	false: {},
	verbs.PortNop == C.IBV_PORT_NOP && verbs.PortDown == C.IBV_PORT_DOWN &&
		verbs.PortInit == C.IBV_PORT_INIT && verbs.PortArmed == C.IBV_PORT_ARMED &&
		verbs.PortActive == C.IBV_PORT_ACTIVE && verbs.PortActiveDefer == C.IBV_PORT_ACTIVE_DEFER &&

		verbs.LinkUnspecified == C.IBV_LINK_LAYER_UNSPECIFIED && verbs.LinkInfiniBand == C.IBV_LINK_LAYER_INFINIBAND &&
		verbs.LinkEthernet == C.IBV_LINK_LAYER_ETHERNET &&

		verbs.GIDTypeIB == C.IBV_GID_TYPE_IB && verbs.GIDTypeRoCEv1 == C.IBV_GID_TYPE_ROCE_V1 &&
		verbs.GIDTypeRoCEv2 == C.IBV_GID_TYPE_ROCE_V2 &&

		verbs.AccessLocalWrite == C.IBV_ACCESS_LOCAL_WRITE &&

		verbs.Reset == C.IBV_QPS_RESET && verbs.Init == C.IBV_QPS_INIT && verbs.RTR == C.IBV_QPS_RTR &&
		verbs.RTS == C.IBV_QPS_RTS && verbs.SQD == C.IBV_QPS_SQD && verbs.SQE == C.IBV_QPS_SQE &&
		verbs.Err == C.IBV_QPS_ERR &&

		verbs.MaskState == C.IBV_QP_STATE && verbs.MaskAccess == C.IBV_QP_ACCESS_FLAGS &&
		verbs.MaskPKeyIndex == C.IBV_QP_PKEY_INDEX && verbs.MaskPort == C.IBV_QP_PORT &&
		verbs.MaskQKey == C.IBV_QP_QKEY && verbs.MaskAV == C.IBV_QP_AV && verbs.MaskPathMTU == C.IBV_QP_PATH_MTU &&
		verbs.MaskTimeout == C.IBV_QP_TIMEOUT && verbs.MaskRetryCount == C.IBV_QP_RETRY_CNT &&
		verbs.MaskRNRRetry == C.IBV_QP_RNR_RETRY && verbs.MaskRQPSN == C.IBV_QP_RQ_PSN &&
		verbs.MaskMaxRdAtomic == C.IBV_QP_MAX_QP_RD_ATOMIC && verbs.MaskMinRNRTimer == C.IBV_QP_MIN_RNR_TIMER &&
		verbs.MaskSQPSN == C.IBV_QP_SQ_PSN && verbs.MaskMaxDestRdAtomic == C.IBV_QP_MAX_DEST_RD_ATOMIC &&
		verbs.MaskDestQPN == C.IBV_QP_DEST_QPN &&

		verbs.SendSignaled == C.IBV_SEND_SIGNALED &&
		verbs.SendSolicited == C.IBV_SEND_SOLICITED && verbs.SendInline == C.IBV_SEND_INLINE &&

		verbs.WCSuccess == C.IBV_WC_SUCCESS && verbs.WCLocLenErr == C.IBV_WC_LOC_LEN_ERR &&
		verbs.WCLocProtErr == C.IBV_WC_LOC_PROT_ERR && verbs.WCWRFlushErr == C.IBV_WC_WR_FLUSH_ERR &&
		verbs.WCRemInvReq == C.IBV_WC_REM_INV_REQ_ERR && verbs.WCRetryExc == C.IBV_WC_RETRY_EXC_ERR &&
		verbs.WCRNRRetryExc == C.IBV_WC_RNR_RETRY_EXC_ERR && verbs.WCGeneralErr == C.IBV_WC_GENERAL_ERR: {},
}
