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
