package restrack

import "strconv"

// The numbers of <rdma/rdma_netlink.h>. They are the kernel's interface and
// never change.

// client is RDMA_NL_NLDEV, the part of the kernel that is asked; a message's
// type is client<<10 | command.
const client = 5

// Commands: enum rdma_nldev_command.
const (
	commandDevice    = 1
	commandPort      = 5
	commandSystem    = 6
	commandSummary   = 9
	commandQP        = 10
	commandCMID      = 11
	commandCQ        = 12
	commandMR        = 13
	commandPD        = 14
	commandChardev   = 15
	commandStatistic = 17
	commandCTX       = 22
	commandSRQ       = 23
)

// commandName returns the name of a command without its prefix
// RDMA_NLDEV_CMD_, as in RES_QP_GET.
func commandName(command uint16) string {
	switch command {
	case commandDevice:
		return "GET"
	case commandPort:
		return "PORT_GET"
	case commandSystem:
		return "SYS_GET"
	case commandSummary:
		return "RES_GET"
	case commandQP:
		return "RES_QP_GET"
	case commandCMID:
		return "RES_CM_ID_GET"
	case commandCQ:
		return "RES_CQ_GET"
	case commandMR:
		return "RES_MR_GET"
	case commandPD:
		return "RES_PD_GET"
	case commandChardev:
		return "GET_CHARDEV"
	case commandStatistic:
		return "STAT_GET"
	case commandCTX:
		return "RES_CTX_GET"
	case commandSRQ:
		return "RES_SRQ_GET"
	}
	return "command " + strconv.Itoa(int(command))
}

// Attributes: enum rdma_nldev_attr, those that are read here.
const (
	attrDeviceIndex    = 1
	attrDeviceName     = 2
	attrPort           = 3
	attrSummary        = 15
	attrSummaryEntry   = 16
	attrSummaryName    = 17
	attrSummaryCurrent = 18
	attrQPs            = 19
	attrQP             = 20
	attrLQPN           = 21
	attrType           = 26
	attrState          = 27
	attrPID            = 28
	attrKernelName     = 29
	attrCMIDs          = 30
	attrCMID           = 31
	attrCQs            = 35
	attrCQ             = 36
	attrCQE            = 37
	attrUseCount       = 38
	attrMRs            = 40
	attrMR             = 41
	attrMRLength       = 45
	attrPDs            = 46
	attrPD             = 47
	attrNetdevName     = 51
	attrPDN            = 60
	attrCQN            = 61
	attrMRN            = 62
	attrCMIDN          = 63
	attrCTXN           = 64
	attrNetnsMode      = 66
	attrChardevType    = 69
	attrDriverID       = 73
	attrCounters       = 80
	attrCounter        = 81
	attrCounterName    = 82
	attrCounterValue   = 83
	attrCTXs           = 86
	attrCTX            = 87
	attrSRQs           = 88
	attrSRQ            = 89
	attrSRQN           = 90
	attrDriverDetails  = 97
	attrSubtype        = 98
)

// attributeName returns the name of an attribute without its prefix
// RDMA_NLDEV_ATTR_, as in RES_LQPN.
func attributeName(kind uint16) string {
	switch kind {
	case attrDeviceIndex:
		return "DEV_INDEX"
	case attrDeviceName:
		return "DEV_NAME"
	case attrPort:
		return "PORT_INDEX"
	case attrSummary:
		return "RES_SUMMARY"
	case attrSummaryEntry:
		return "RES_SUMMARY_ENTRY"
	case attrSummaryName:
		return "RES_SUMMARY_ENTRY_NAME"
	case attrSummaryCurrent:
		return "RES_SUMMARY_ENTRY_CURR"
	case attrQPs:
		return "RES_QP"
	case attrQP:
		return "RES_QP_ENTRY"
	case attrLQPN:
		return "RES_LQPN"
	case attrType:
		return "RES_TYPE"
	case attrState:
		return "RES_STATE"
	case attrPID:
		return "RES_PID"
	case attrKernelName:
		return "RES_KERN_NAME"
	case attrCMIDs:
		return "RES_CM_ID"
	case attrCMID:
		return "RES_CM_ID_ENTRY"
	case attrCQs:
		return "RES_CQ"
	case attrCQ:
		return "RES_CQ_ENTRY"
	case attrCQE:
		return "RES_CQE"
	case attrUseCount:
		return "RES_USECNT"
	case attrMRs:
		return "RES_MR"
	case attrMR:
		return "RES_MR_ENTRY"
	case attrMRLength:
		return "RES_MRLEN"
	case attrPDs:
		return "RES_PD"
	case attrPD:
		return "RES_PD_ENTRY"
	case attrNetdevName:
		return "NDEV_NAME"
	case attrPDN:
		return "RES_PDN"
	case attrCQN:
		return "RES_CQN"
	case attrMRN:
		return "RES_MRN"
	case attrCMIDN:
		return "RES_CM_IDN"
	case attrCTXN:
		return "RES_CTXN"
	case attrNetnsMode:
		return "SYS_ATTR_NETNS_MODE"
	case attrChardevType:
		return "CHARDEV_TYPE"
	case attrDriverID:
		return "UVERBS_DRIVER_ID"
	case attrCounters:
		return "STAT_HWCOUNTERS"
	case attrCounter:
		return "STAT_HWCOUNTER_ENTRY"
	case attrCounterName:
		return "STAT_HWCOUNTER_ENTRY_NAME"
	case attrCounterValue:
		return "STAT_HWCOUNTER_ENTRY_VALUE"
	case attrCTXs:
		return "RES_CTX"
	case attrCTX:
		return "RES_CTX_ENTRY"
	case attrSRQs:
		return "RES_SRQ"
	case attrSRQ:
		return "RES_SRQ_ENTRY"
	case attrSRQN:
		return "RES_SRQN"
	case attrDriverDetails:
		return "DRIVER_DETAILS"
	case attrSubtype:
		return "RES_SUBTYPE"
	}
	return strconv.Itoa(int(kind))
}
