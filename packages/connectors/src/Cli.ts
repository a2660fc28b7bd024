import { Schema } from "effect"
import { connector, judgeStatus } from "./Connector.ts"
import { forward } from "./HttpDelivery.ts"
import { forwarding, pacing, Path, setting } from "./Settings.ts"

const localOrigin = "http://localhost"

/** A program on a developer's own machine, reached through a tunnel that it keeps open itself. */
export const cli = connector({
  type: "CLI",
  name: "Command line",
  description: "Delivers to a program on somebody's own machine, through a tunnel.",
  settings: {
    path: setting(Path.annotate({ description: "What is appended to the address of the local program" }), "/"),
    http_method: forwarding.http_method,
    ...pacing
  },
  none: {
    url: Schema.Null.annotate({ message: "is set by the client of the tunnel, as its local_url; use config.path" }),
    max_concurrency: Schema.Null.annotate({
      message: "is fixed for CLI destinations, by what a tunnel holds; use config.rate_limit"
    })
  },
  auths: ["NO_AUTH", "SERVICE_SIGNATURE", "CUSTOM_HEADER"],
  leadsTo: () => "whoever holds the tunnel open",
  credentials: "forward",
  carriesPath: () => true,
  isTunnel: true,
  example: { name: "my-laptop", type: "CLI", config: { path: "/webhooks" } },
  open: ({ http_method, path }, { headers, signing }) => ({
    kind: "tunnel",
    origin: localOrigin,
    prepare: forward(
      { url: localOrigin + path, http_method, path_forwarding_disabled: false },
      { headers: { ...headers, "x-gateway-tunnel": "cli" }, signing }
    ),
    judge: judgeStatus
  })
})
