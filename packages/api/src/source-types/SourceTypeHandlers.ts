import { hash } from "node:crypto"
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { listed } from "@tidegate/model/Lists"
import { sourceTypes } from "@tidegate/resources/source/SourceTypeCatalog"
import { Api } from "../contract/Api.ts"
import { tagged } from "../handlers/Tagged.ts"

const shown = listed(sourceTypes, null)
const etag = JSON.stringify(hash("sha256", JSON.stringify(shown)).slice(0, 32))

export const layer = HttpApiBuilder.group(Api, "source-types", (handlers) =>
  handlers.handleRaw("list", ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
    Effect.sync(() => tagged(request, etag, shown))
  )
)
