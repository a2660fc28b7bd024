import { expect, it } from "vitest"
import { addressBlock } from "@tidegate/doors/wire/AddressBlock"

it.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::6", "2001:db8:1:2"],
  ["2001:db8:1::5:6:7", "2001:db8:1:0"],
  ["2001:db8::1", "2001:db8:0:0"],
  ["::1", "0:0:0:0"],
  ["::", "0:0:0:0"],
  ["fe80::1:2:3:4%eth0", "fe80:0:0:0"],
  ["", ""]
])("%s counts as %s", (address, block) => {
  expect(addressBlock(address)).toBe(block)
})
