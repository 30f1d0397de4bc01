package restrack

import (
	"fmt"
	"strconv"
)

// Device is an RDMA device. What the kernel did not tell has its zero value.
type Device struct {
	Index        uint32 // stays with the device; not given again soon after it is removed
	Name         string // as in /sys/class/infiniband; a device can be renamed
	NodeGUID     string // as node_guid in sysfs: 0000:00ff:fe00:0001
	SysImageGUID string // as sys_image_guid in sysfs
	Firmware     string // as the driver words it; software devices have none
	Ports        uint32 // how many
	NodeType     string // ca, rnic, switch, …; unknown_<number> for a new one
	Protocol     string // ib, roce, iw, opa, usnic
}

// DecodeDevice decodes the payload of one reply to GET. An error is a
// [MessageError].
func DecodeDevice(data []byte) (Device, error) {
	device, err := decodeDevice(data)
	return device, blame(commandDevice, 0, err)
}

func decodeDevice(data []byte) (device Device, err error) {
	for len(data) > 0 {
		a, rest, err := nextAttribute(data)
		if err != nil {
			return Device{}, err
		}
		data = rest
		switch a.kind {
		case attrDeviceIndex:
			device.Index, err = a.uint32()
		case attrDeviceName:
			device.Name = string(a.text())
		case attrPort:
			device.Ports, err = a.uint32()
		case attrFirmware:
			device.Firmware = string(a.text())
		case attrNodeGUID:
			device.NodeGUID, err = guid(a)
		case attrSysImageGUID:
			device.SysImageGUID, err = guid(a)
		case attrNodeType:
			var number uint8
			if number, err = a.uint8(); err == nil {
				if device.NodeType = nodeType(number); device.NodeType == "" {
					device.NodeType = "unknown_" + strconv.Itoa(int(number))
				}
			}
		case attrProtocol:
			device.Protocol = string(a.text())
		}
		if err != nil {
			return Device{}, err
		}
	}
	return device, nil
}

// guid formats a GUID, which comes in the host's byte order here, as sysfs does.
func guid(a attribute) (string, error) {
	value, err := a.uint64()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%04x:%04x:%04x:%04x",
		uint16(value>>48), uint16(value>>32), uint16(value>>16), uint16(value)), nil
}
