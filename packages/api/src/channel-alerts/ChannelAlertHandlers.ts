import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { alertSettings, changeAlertSettings } from "@tidegate/storage/channels/AlertSettings"
import { acknowledgeAlert } from "@tidegate/storage/channels/Alerts"
import { listAlerts } from "@tidegate/storage/reads/AlertReads"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { asked, carriedThrough, reader, type Stores, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { pageOf } from "../handlers/ListInput.ts"
import { settingsPatch } from "./ChannelAlertsApi.ts"

/** Faults of the settings have a code of their own. */
const asSettings = (error: GatewayError): GatewayError =>
  error.code === "VALIDATION_ERROR" ? fail("CHANNEL_SETTINGS_INVALID", error.message, error.data) : error

export const layer = HttpApiBuilder.group(
  Api,
  "channelAlerts",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const stores = yield* Effect.context<Stores>()

    const update = ({ request }: WithBody) =>
      Effect.gen(function* () {
        const { id: team } = yield* CurrentTeam
        const body = yield* readJsonObject(request)
        const change = yield* Effect.mapError(Effect.fromResult(settingsPatch.judge(body)), asSettings)
        return yield* carriedThrough(Effect.provideContext(changeAlertSettings(team, change), stores))
      })

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const { status = "active" } = query
          return yield* reading(listAlerts(team, status, yield* pageOf(Lists.channelAlerts, query, { team, status })))
        })
      )
      .handle("acknowledge", ({ params }) =>
        Effect.flatMap(asked, (of) => reading(acknowledgeAlert({ ...of, id: params.id })))
      )
      .handle("settings", () => Effect.flatMap(CurrentTeam, ({ id }) => reading(alertSettings(id))))
      .handleRaw("updateSettings", update)
      .handleRaw("updateSettingsByPut", update)
  })
)
