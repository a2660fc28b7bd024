import { hkdfSync, type KeyObject, randomBytes } from "node:crypto"
import { Context } from "effect"
import { callbackPath, decisionPath, ingressAt, ingressOrigin, type Ingress } from "@tidegate/model/Ingress"
import { readStepToken, type StepPlace, stepToken, type StepTokenKeys } from "@tidegate/outbound-auth/StepToken"
import type { UrlOfWait } from "@tidegate/workflows/kinds/WaitStep"
import type { Workflow } from "@tidegate/workflows/Workflow"

/** The URLs of the steps of a run that wait for somebody outside, by the ids of the steps. Each URL is a credential. */
export interface RunLinks {
  readonly waits: { readonly [step: string]: { readonly [url: string]: string } }
  /** The secrets in these URLs. */
  readonly tokens: ReadonlyArray<string>
}

export interface StepLinks {
  /** Null: no step of the workflow waits for somebody outside. */
  readonly of: (workflow: Pick<Workflow, "urls">, run: Omit<StepPlace, "step_id">) => RunLinks | null
  /** The step that a token in a URL is for; null: it is no token of this gateway. */
  readonly read: (token: string) => StepPlace | null
}

const decision = (decides: string) => (ingress: Ingress["Service"]) =>
  `${ingress.publicUrl}${decisionPath}${decides}?token=`

/** What comes before the token in a URL. */
const addressOf: { readonly [name in UrlOfWait]: (ingress: Ingress["Service"]) => string } = {
  approve_url: decision("approve"),
  reject_url: decision("reject"),
  callback_url: (ingress) => ingressOrigin(ingress) + callbackPath
}

export const makeStepLinks = (keys: StepTokenKeys, ingress: Ingress["Service"]): StepLinks => ({
  of: ({ urls }, run) => {
    const waits: Array<readonly [step: string, urls: RunLinks["waits"][string]]> = []
    const tokens: Array<string> = []
    for (const [step_id, names] of urls) {
      const token = stepToken(keys, { ...run, step_id })
      tokens.push(token)
      waits.push([step_id, Object.fromEntries(names.map((name) => [name, addressOf[name](ingress) + token]))])
    }
    return tokens.length === 0 ? null : { waits: Object.fromEntries(waits), tokens }
  },
  read: (token) => readStepToken(keys, token)
})

/** The keys of tokens, derived from the keys of the ring: a URL works as long as its key is in the ring. */
export const stepTokenKeysOf = ([first, ...others]: readonly [
  KeyObject,
  ...ReadonlyArray<KeyObject>
]): StepTokenKeys => {
  const derived = (key: KeyObject): string =>
    Buffer.from(hkdfSync("sha256", key, "", "tidegate step tokens v1", 32)).toString("hex")
  return [derived(first), ...others.map(derived)]
}

/** With a random key unless the application provides those of the ring. */
export const StepLinks = Context.Reference<StepLinks>("@tidegate/entities/Workflow/StepLinks", {
  defaultValue: () => makeStepLinks([randomBytes(32).toString("hex")], ingressAt("http://localhost"))
})
