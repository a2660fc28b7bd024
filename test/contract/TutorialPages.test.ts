import { spawnSync } from "node:child_process"
import { describe, expect } from "vitest"
import { slack } from "../../packages/connectors/test/oracles/Slack.ts"
import { it as base } from "../support/it.ts"
import { standingIn } from "../support/Mocks.ts"
import { motoIsMissing, motoRegion, startMoto } from "../support/Moto.ts"
import { blocksOf, shellIn } from "../support/Page.ts"
import { Target } from "../support/Target.ts"
import { patience } from "../support/Waiting.ts"

/**
 * `docs/tutorial-sqs-to-slack.md`, word for word, with moto and the command line of AWS, where both are installed. In Slack's place is a server
 * that keeps what it is sent.
 */

const isMissing =
  motoIsMissing ?? (spawnSync("aws", ["--version"]).status === 0 ? null : "there is no command line of AWS (aws)")
if (isMissing !== null) console.warn(`the tutorial from SQS to Slack is left out: ${isMissing}`)

const it = base
  .extend("chat", { scope: "file" }, async ({}, { onCleanup }) => {
    const chat = await Target.start((response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(slack.accepted.body))
    })
    onCleanup(() => chat.close())
    return chat
  })
  .extend("settings", { scope: "file" }, ({ chat }) => standingIn(chat.origin))
  .extend("moto", { scope: "file" }, async ({}, { onCleanup }) => {
    const moto = await startMoto()
    onCleanup(() => moto.close())
    return moto
  })

describe.skipIf(isMissing !== null)("Tutorial from SQS to Slack (skipped if moto is not installed)", () => {
  it(
    "The page leads from a message of a queue to a message in a channel",
    { timeout: 4 * patience },
    async ({ chat, gateway, moto, place }) => {
      const shell = await shellIn(gateway, place.folder, {
        AWS_ENDPOINT_URL: moto.origin,
        AWS_REGION: motoRegion,
        AWS_ACCESS_KEY_ID: moto.key.access_key_id,
        AWS_SECRET_ACCESS_KEY: moto.key.secret_access_key,
        BOT_TOKEN: "xoxb-of-the-test",
        CHANNEL: "C0123456789"
      })
      const blocks = await blocksOf("tutorial-sqs-to-slack.md", ["sh"])
      await shell(blocks.map(({ code }) => code).join(""))
      const [message, ...others] = chat.received
      expect(others).toEqual([])
      expect(slack.meaning(message!)).toMatchObject({
        authorization: "Bearer xoxb-of-the-test",
        channel: "C0123456789",
        text: "Order 7 of Ada is paid"
      })
      const queue = `${moto.origin}/123456789012/orders`
      await gateway.eventually("the message is deleted", async () => ((await moto.count(queue)) === 0 ? true : null))
    }
  )
})
