/** The handlers that Restate calls: `relay` delivers a body, `flow` runs the steps, each stored. */
import * as restate from "@restatedev/restate-sdk"
import { deliver, flow } from "./common.mjs"

const bench = restate.service({
  name: "bench",
  handlers: {
    relay: (ctx, body) => ctx.run("send", () => deliver(JSON.stringify(body))),
    flow: (ctx, body) => flow(body, (name, run) => ctx.run(name, run))
  }
})
await restate.serve({ services: [bench], port: Number(process.env.PORT) })
