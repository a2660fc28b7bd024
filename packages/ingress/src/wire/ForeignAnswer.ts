import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http"
import { inertPolicy, originWide, policies } from "@tidegate/model/HeaderRules"

/**
 * The headers of an answer under an ingress URL. Its bytes are another party's (a source's owner, an upstream, a sender), and the control API
 * may have the same origin: a browser takes it for the type that it says, runs nothing in it, and learns nothing of the origin by it. Clients that are no
 * browsers notice nothing.
 *
 * An answer of the upstream's keeps no policy of its own: the gateway's is the one that counts.
 */
export const foreignHeaders = (
  written: OutgoingHttpHeaders | ReadonlyArray<OutgoingHttpHeader> | undefined
): OutgoingHttpHeaders | Array<OutgoingHttpHeader> => {
  if (isFlat(written)) {
    const headers: Array<OutgoingHttpHeader> = []
    let policy = sandbox
    for (let i = 0; i + 1 < written.length; i += 2) {
      const name = String(written[i]).toLowerCase()
      if (name === policyName && written[i + 1] === inertPolicy) policy = inertPolicy
      if (!originWide.has(name) && !policies.has(name)) headers.push(written[i]!, written[i + 1]!)
    }
    headers.push(policyName, policy, "x-content-type-options", "nosniff")
    return headers
  }
  const headers: OutgoingHttpHeaders = { [policyName]: sandbox, "x-content-type-options": "nosniff" }
  for (const [name, value] of Object.entries(written ?? {})) {
    const lower = name.toLowerCase()
    if (lower === policyName && value === inertPolicy) headers[policyName] = inertPolicy
    if (!originWide.has(lower) && !policies.has(lower)) headers[name] = value
  }
  return headers
}

const isFlat = (
  written: OutgoingHttpHeaders | ReadonlyArray<OutgoingHttpHeader> | undefined
): written is ReadonlyArray<OutgoingHttpHeader> => Array.isArray(written)

const policyName = "content-security-policy"
/** A document is shown without scripts, forms, plug-ins and an origin, but with its styles and images. */
const sandbox = "sandbox"
