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
	name := map[uint16]string{
		commandDevice:    "GET",
		commandPort:      "PORT_GET",
		commandSystem:    "SYS_GET",
		commandSummary:   "RES_GET",
		commandQP:        "RES_QP_GET",
		commandCMID:      "RES_CM_ID_GET",
		commandCQ:        "RES_CQ_GET",
		commandMR:        "RES_MR_GET",
		commandPD:        "RES_PD_GET",
		commandChardev:   "GET_CHARDEV",
		commandStatistic: "STAT_GET",
		commandCTX:       "RES_CTX_GET",
		commandSRQ:       "RES_SRQ_GET",
	}[command]
	if name == "" {
		return "command " + strconv.Itoa(int(command))
	}
	return name
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
	name := map[uint16]string{
		attrDeviceIndex:    "DEV_INDEX",
		attrDeviceName:     "DEV_NAME",
		attrPort:           "PORT_INDEX",
		attrSummary:        "RES_SUMMARY",
		attrSummaryEntry:   "RES_SUMMARY_ENTRY",
		attrSummaryName:    "RES_SUMMARY_ENTRY_NAME",
		attrSummaryCurrent: "RES_SUMMARY_ENTRY_CURR",
		attrQPs:            "RES_QP",
		attrQP:             "RES_QP_ENTRY",
		attrLQPN:           "RES_LQPN",
		attrType:           "RES_TYPE",
		attrState:          "RES_STATE",
		attrPID:            "RES_PID",
		attrKernelName:     "RES_KERN_NAME",
		attrCMIDs:          "RES_CM_ID",
		attrCMID:           "RES_CM_ID_ENTRY",
		attrCQs:            "RES_CQ",
		attrCQ:             "RES_CQ_ENTRY",
		attrCQE:            "RES_CQE",
		attrUseCount:       "RES_USECNT",
		attrMRs:            "RES_MR",
		attrMR:             "RES_MR_ENTRY",
		attrMRLength:       "RES_MRLEN",
		attrPDs:            "RES_PD",
		attrPD:             "RES_PD_ENTRY",
		attrNetdevName:     "NDEV_NAME",
		attrPDN:            "RES_PDN",
		attrCQN:            "RES_CQN",
		attrMRN:            "RES_MRN",
		attrCMIDN:          "RES_CM_IDN",
		attrCTXN:           "RES_CTXN",
		attrNetnsMode:      "SYS_ATTR_NETNS_MODE",
		attrChardevType:    "CHARDEV_TYPE",
		attrDriverID:       "UVERBS_DRIVER_ID",
		attrCounters:       "STAT_HWCOUNTERS",
		attrCounter:        "STAT_HWCOUNTER_ENTRY",
		attrCounterName:    "STAT_HWCOUNTER_ENTRY_NAME",
		attrCounterValue:   "STAT_HWCOUNTER_ENTRY_VALUE",
		attrCTXs:           "RES_CTX",
		attrCTX:            "RES_CTX_ENTRY",
		attrSRQs:           "RES_SRQ",
		attrSRQ:            "RES_SRQ_ENTRY",
		attrSRQN:           "RES_SRQN",
		attrDriverDetails:  "DRIVER_DETAILS",
		attrSubtype:        "RES_SUBTYPE",
	}[kind]
	if name == "" {
		return strconv.Itoa(int(kind))
	}
	return name
}
