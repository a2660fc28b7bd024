import { describe, expect, it } from "@effect/vitest"
import { event, opened, sent } from "./Opened.ts"

/** Numbers that JavaScript would round, in what destinations make of an event. */

const id = "12345678901234567891"
const payload = `{"id":${id},"order":{"id":${id},"rate":0.1000000000000000055},"big":1e400}`

describe("Number with more digits than a double", () => {
  it("Long number is written into a spreadsheet cell as text", () => {
    const columns = ["id", "order.rate", "order", "no {{payload.id}}", "{{payload.id}}"]
    const cells = (value_input_option: string) => {
      const sender = opened("SPREADSHEET", { spreadsheet_id: "1BxiMVs0XRA5nFMd", columns, value_input_option })
      const { values } = JSON.parse(sent(sender, event(payload)).text) as { readonly values: ReadonlyArray<unknown> }
      return values[0]
    }
    const object = `{"id":${id},"rate":0.1000000000000000055}`
    expect(cells("RAW")).toEqual([id, "0.1000000000000000055", object, `no ${id}`, id])
    // Typed as it is, it would be rounded there.
    expect(cells("USER_ENTERED")).toEqual([`'${id}`, "'0.1000000000000000055", object, `no ${id}`, `'${id}`])
  })

  it("Long number keeps all digits in a message, alone and inside an object", () => {
    const chat = opened("CHAT_WEBHOOK", {
      url: "https://discord.com/api/webhooks/1/t",
      content_template: "order {{payload.order.id}} {{payload.order}}"
    })
    expect(sent(chat, event(payload)).text).toContain(`order ${id} {\\"id\\":${id},\\"rate\\":0.1000000000000000055}`)
  })

  it("Long number in place of a text is accepted in embeds, fields and blocks", () => {
    const chat = opened("CHAT_WEBHOOK", {
      url: "https://discord.com/api/webhooks/1/t",
      content_template: "",
      embeds: '[{"title":{{payload.id}},"fields":[{"name":{{payload.id}},"value":{{payload.order.rate}}}]}]'
    })
    expect(JSON.parse(sent(chat, event(payload)).text).embeds).toEqual([
      { title: id, fields: [{ name: id, value: "0.1000000000000000055" }] }
    ])
    const bot = opened("CHAT_BOT", {
      channel: "C1",
      text_template: "x",
      blocks_template: '[{"type":"section","text":{"type":"plain_text","text":{{payload.id}}}}]'
    })
    expect(JSON.parse(sent(bot, event(payload)).text).blocks[0].text.text).toBe(id)
  })
})
