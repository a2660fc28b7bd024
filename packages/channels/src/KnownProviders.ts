import { Context } from "effect"
import type { SourceProvider } from "./SourceProvider.ts"
import { sourceProviders } from "./SourceProviders.ts"

/** The providers of sources that this process knows; tests add their own. */
export const KnownProviders = Context.Reference<ReadonlyArray<SourceProvider>>("@tidegate/channels/KnownProviders", {
  defaultValue: () => sourceProviders
})
