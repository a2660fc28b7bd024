import { Schema } from "effect"

/** A setting that is invalid; `message` names the variable. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", { message: Schema.String }) {}
