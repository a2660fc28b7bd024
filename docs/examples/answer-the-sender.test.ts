import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("A source answers each sender with a custom response made from its request", async ({ gateway }) => {
  const source = await gateway.api("PUT", "/sources", {
    name: "chat",
    config: {
      custom_response: {
        body: '{"received":"{{request.id}}"}',
        rules: [
          {
            match: { body: { type: "url_verification" } },
            response: { content_type: "text", body: "{{body.challenge}}" }
          }
        ]
      }
    }
  })
  const post = (body: object) =>
    fetch(source.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })

  expect(await (await post({ type: "url_verification", challenge: "c-42" })).text()).toBe("c-42")
  expect(await (await post({ type: "message" })).json()).toEqual({ received: expect.stringMatching(/^req_/) })
})
