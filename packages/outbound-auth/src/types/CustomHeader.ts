import { Schema } from "effect"
import { HeaderSecret, OutboundHeaderName } from "@tidegate/model/AuthSettings"
import { authType } from "./OutboundAuthType.ts"

const Name = OutboundHeaderName.annotate({
  description: "None that HTTP or the gateway sets",
  examples: ["x-token"]
})

// Stricter than HTTP: the bytes of non-ASCII characters would differ on the wire from the written text.
const OutboundHeaderValue = HeaderSecret.check(
  Schema.makeFilter((value: string) => /^[\x20-\x7e]*$/.test(value) || "must be printable ASCII", {
    toJsonSchema: () => ({ minLength: 1, pattern: String.raw`^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$` })
  })
).annotate({
  description: "The header's value: printable ASCII. Encrypted at rest, masked on read; writing the mask back keeps it"
})

/** Deliveries have a header that the operator chooses. */
export const customHeader = authType({
  type: "CUSTOM_HEADER",
  settings: { header_name: Name, value: OutboundHeaderValue },
  aliases: { header_value: "value" },
  reachesTarget: true,
  readable: ["header_name"],
  compile: ({ header_name, value }) => ({ headers: { [header_name.toLowerCase()]: value }, signs: false })
})
