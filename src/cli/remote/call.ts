import { createClient } from '../../client/client.ts'
import { isPlainObject } from '../../wire/input.ts'
import { parseJson } from '../../wire/parse-json.ts'
import { type Command, command, WrongUsage } from '../shell/command.ts'
import type { CommandIo } from '../shell/output.ts'
import { readAll } from '../shell/password.ts'
import { asked, serverUrl, tokenFor, unknownMethod } from './server.ts'

export const call: Command = command({
  name: 'call',
  usage: 'METHOD [JSON | KEY=VALUE ... | -] [--url URL] [--acting ACTOR]',
  summary: 'Call a method of a running server, with the token of `cellkeep login` or CELLKEEP_TOKEN.',
  details:
    'The input is JSON, `-` for JSON on standard input, or KEY=VALUE pairs; a VALUE that parses as JSON is read as JSON.\ndocs/api.md lists the methods. Without a token the call is anonymous.\n\nExamples:\n  cellkeep call cell_list limit=10\n  cellkeep call cell_create \'{"kind": "note", "data": {"label": "First"}}\'\n  cellkeep call cell_list --json | jq .cells[].id',
  options: { url: { type: 'string' }, acting: { type: 'string' } },
  args: Number.POSITIVE_INFINITY,
  async run({ args: [method, ...words], options, io, out }) {
    if (method === undefined) throw new WrongUsage('METHOD is missing. Name one, such as account_verify.')
    const input = { ...(await inputOf(words, io)), ...(options.acting && { acting: options.acting }) }
    const url = await serverUrl(io, options.url)
    const token = await tokenFor(io, url)
    const client = createClient<Record<string, never>>({ url, token }) as unknown as Record<
      string,
      (input: unknown) => Promise<unknown>
    >
    const run = client[method]
    // `try`, `account` and `then` belong to the client itself.
    if (typeof run !== 'function') throw unknownMethod(method)
    const result = await asked(url, () => run(input), method)
    out.result(result as Record<string, unknown>, JSON.stringify(result, null, 2))
  },
})

/** The largest body that a server can be set to accept, in bytes. */
const inputMax = 16_777_216

async function inputOf(words: readonly string[], io: CommandIo): Promise<Record<string, unknown>> {
  const [only = '{}', ...more] = words
  if (more.length > 0 || /^\w+=/.test(only)) return Object.fromEntries(words.map(pairOf))
  const text = only === '-' ? await readAll(io, inputMax, 'an input') : only
  try {
    const input = parseJson(text)
    if (isPlainObject(input)) return input
  } catch {}
  throw new WrongUsage(
    'The input is not a JSON object. Quote it for the shell: \'{"id": "…"}\', or write id=….',
  )
}

function pairOf(word: string): [string, unknown] {
  const [, key = '', value = ''] = /^(\w+)=(.*)$/s.exec(word) ?? []
  if (key === '') throw new WrongUsage(`${word} is not KEY=VALUE.`)
  try {
    return [key, parseJson(value)]
  } catch {
    return [key, value]
  }
}
