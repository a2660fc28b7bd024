import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http"
import { inertPolicy, originWide, policies } from "@tidegate/model/HeaderRules"

/**
 * Adds security headers to an answer under an ingress URL. Its content comes from another party (a source's owner, an upstream, a sender), and
 * the control API may have the same origin. With these headers a browser uses the declared type only, runs no scripts, and exposes
 * nothing of the origin. Other clients are not affected.
 *
 * Security policies in an upstream's answer are replaced: only the gateway's count.
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
/** Shows a document without scripts, forms, plug-ins and origin, but with styles and images. */
const sandbox = "sandbox"
