import { describe, expect, it } from "@effect/vitest"
import { changed, checkOf, hasCheck, inbound } from "./inbound.ts"

const state = "a secret clientState, größe"
const verify = (body: unknown, auth = state) =>
  checkOf("MICROSOFT_GRAPH", { api_key: auth })(
    inbound({ body: typeof body === "string" ? body : JSON.stringify(body) })
  )

// The examples of https://learn.microsoft.com/graph/change-notifications-delivery-webhooks and -lifecycle-events, with
// our clientState.
const change = {
  id: "lsgTZMr9KwAAA",
  subscriptionId: "76619225-ff6b-4746-96de-1d4f8ad5f9a5",
  subscriptionExpirationDateTime: "2030-03-20T11:00:00.0000000Z",
  clientState: state,
  changeType: "created",
  resource: "users/a1b2/messages/AAMk",
  resourceData: { "@odata.type": "#Microsoft.Graph.Message", id: "AAMk" }
}
const lifecycle = { subscriptionId: "s", clientState: state, lifecycleEvent: "reauthorizationRequired" }

describe("MICROSOFT_GRAPH", () => {
  it("A Microsoft Graph batch is verified when every notification carries the clientState", () => {
    expect(verify({ value: [change] })).toBe(true)
    expect(verify({ value: [change, lifecycle] })).toBe(true)
    expect(verify({ validationTokens: ["eyJ…"], value: [change] })).toBe(true)
  })

  it("A Microsoft Graph batch is refused when one notification lacks the clientState", () => {
    for (const clientState of [undefined, null, "", changed(state), `${state} `, state.toUpperCase(), 1, [state], {}]) {
      expect(verify({ value: [{ ...change, clientState }] })).toBe(false)
      expect(verify({ value: [change, { ...lifecycle, clientState }] })).toBe(false)
      expect(verify({ value: [{ ...lifecycle, clientState }, change] })).toBe(false)
    }
    expect(verify({ value: [change] }, changed(state))).toBe(false)
  })

  it("A Microsoft Graph batch without notifications is refused", () => {
    for (const body of [
      "",
      "{",
      "null",
      [],
      [change],
      {},
      change,
      { value: [] },
      { value: change },
      { value: [null] },
      { value: [[change]] },
      { value: [state] },
      { clientState: state, value: [{}] }
    ]) {
      expect(verify(body)).toBe(false)
    }
  })

  it("A lone surrogate in a clientState is not equal to the replacement character", () => {
    expect(verify('{"value":[{"clientState":"x\\ud800"}]}', "x\ufffd")).toBe(false)
  })

  it("Microsoft Graph requests are not verified without a secret", () => {
    expect(hasCheck("MICROSOFT_GRAPH", {})).toBe(false)
    expect(hasCheck("MICROSOFT_GRAPH", { api_key: "" })).toBe(false)
  })
})
