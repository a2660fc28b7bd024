import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { sourceCatalog } from "@tidegate/channels/SourceCatalog"
import { Api } from "../contract/Api.ts"
import { tagged } from "../handlers/Tagged.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "source-providers",
  Effect.fnUntraced(function* (handlers) {
    const providers = yield* KnownProviders
    /** Made by the first call: a gateway that does not use it does not have it in memory. */
    let catalog: ReturnType<typeof sourceCatalog> | null = null
    return handlers.handleRaw("providers", ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
      Effect.sync(() => {
        const { hash, manifest } = (catalog ??= sourceCatalog(providers))
        return tagged(request, JSON.stringify(hash), manifest)
      })
    )
  })
)
