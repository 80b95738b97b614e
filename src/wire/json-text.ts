/** A result whose JSON text exists already. It is sent as it is; `value` parses it, for callers in this process. */
export class JsonText {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  get text(): string {
    return this.#text
  }

  get value(): unknown {
    return JSON.parse(this.#text)
  }
}

/** The value of a result, which may be a text. */
export const resultValue = (result: unknown): unknown => (result instanceof JsonText ? result.value : result)
