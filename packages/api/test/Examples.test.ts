import { expect, it } from "vitest"
import { capabilities } from "@tidegate/entities/Transformation/Capabilities"
import { whsecOf } from "@tidegate/outbound-auth/DeliverySignature"
import * as Examples from "../src/contract/Examples.ts"

// The contract imports no code of the gateway, so its examples repeat values that the gateway computes.

it("The example of the sandbox's capabilities has the sandbox's real limits", () => {
  expect(Examples.capabilities).toEqual(capabilities)
})

it("The example of a rotated signing secret shows the same secret in its whsec_ form", () => {
  const { value, whsec_value } = Examples.rotatedSecrets.signing_secret
  expect(whsec_value).toBe(whsecOf(value))
})
