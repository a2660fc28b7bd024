import { expect, it } from "vitest"
import { clientOf } from "../src/ClientAddress.ts"

it.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002:ffff::1", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8:1::5:6:7", "2001:db8:1:0::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["fe80::1:2:3:4%eth0", "fe80:0:0:0::/64"],
  ["", ""],
  ["x".repeat(1_000), "x".repeat(64)]
])("Address %s counts as client %s", (address, client) => {
  expect(clientOf(address)).toBe(client)
})
