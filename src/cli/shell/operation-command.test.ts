import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { account, type Operation, operation } from '../../core/operation.ts'
import { operations } from '../../operations.ts'
import { scenario, testService } from '../../testing/index.ts'
import { execute } from '../main.ts'
import { operationCommand } from './operation-command.ts'
import type { CommandIo } from './output.ts'

const cwd = await mkdtemp(join(tmpdir(), 'ck-operation-'))
const test = await testService()
afterAll(async () => {
  await test.close()
  await rm(cwd, { recursive: true })
})

/** A terminal on which these answers are typed, and its output. */
function terminal(...answers: string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  for (const answer of answers) stdin.write(`${answer}\n`)
  const said = { stdout: '', stderr: '' }
  const io: CommandIo = {
    stdin,
    stdout: { write: (text) => (said.stdout += text) },
    stderr: { write: (text) => (said.stderr += text) },
    env: { CELLKEEP_DATABASE_URL: test.databaseUrl },
    cwd,
  }
  return { io, said }
}

describe('every operation with a command', () => {
  const all = Object.entries(operations as unknown as Record<string, Operation>)
  const declared = all.flatMap(([name, { command, input, doc }]) =>
    command ? [{ name, command, doc, shape: input.shape }] : [],
  )

  it('has a name of its own', () => {
    const names = declared.map(({ command }) => command.name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  it.each(declared)(
    '$name takes each value that it needs from the words, and no other',
    ({ command, shape }) => {
      const args = Object.keys(command.args ?? {})
      expect(args.filter((key) => !(key in shape))).toEqual([])
      const needed = Object.keys(shape).filter((key) => !shape[key].safeParse(undefined).success)
      expect(needed.filter((key) => !args.includes(key))).toEqual([])
    },
  )

  it.each(declared)('$name says what it does in a sentence, and what it did', ({ command, doc }) => {
    expect(doc).toMatch(/^[A-Z].*\.$/)
    expect(command.phrase ?? command.table ?? command.lines, 'a phrase, table or lines').toBeDefined()
  })
})

it('a declaration is all that a command needs', async () => {
  const ada = await test.account()
  const greet = operation({
    doc: 'Greet an account.',
    input: z.strictObject({
      account_id: z.guid(),
      word: z.string().max(5),
      times: z.int().default(1),
      email: z.string().nullish(),
      loud: z.boolean().optional(),
    }),
    errors: ['account_not_found'],
    handler: async ({ word, times, loud }) => ({ said: `${loud ? word.toUpperCase() : word}`.repeat(times) }),
    command: {
      name: 'greet nicely',
      args: {
        account_id: account,
        word: 'WORD',
        times: '--times N',
        email: 'ADDRESS | --none',
        loud: '--loud',
      },
      phrase: ({ said }, { who }) => `${said} ${who}`,
    },
  })
  const command = operationCommand(greet as never)
  expect(command.usage).toBe('greet nicely REF WORD [ADDRESS | --none] [--times N] [--loud]')
  expect(command.details).toMatch(/Possible refusals:\n {2}There is no such account/)
  const run = async (...args: string[]) => {
    const { io, said } = terminal()
    const code = await command.run(args, io)
    return { code, ...said }
  }
  expect(await run(ada.username, 'hi', '--none', '--loud', '--times', '2')).toEqual({
    code: 0,
    stdout: `HIHI ${ada.username}\n`,
    stderr: '',
  })
  const { stdout } = await run(ada.username, 'hi', '--json')
  expect(JSON.parse(stdout)).toEqual({ account_id: ada.id, said: 'hi' })
  await expect(run(ada.username, 'too long', '--none')).rejects.toMatchObject({
    data: { reason: 'invalid_params', issues: [{ path: ['WORD'] }] },
  })
  await expect(run(ada.username)).rejects.toThrow('WORD is missing.')
  await expect(run(ada.username, 'hi', 'a@b.cd', '--none')).rejects.toThrow('Give one of: ADDRESS | --none.')
})

describe('what cannot be taken back', () => {
  const everyone = ['session', 'revoke-all', '--everyone']

  it('is asked at a terminal, and any answer but yes changes nothing', async () => {
    await test.account()
    for (const answer of ['no', '', 'yesterday']) {
      const { io, said } = terminal(answer)
      expect(await scenario(test, () => execute(everyone, io))).toBe(1)
      expect(said).toEqual({
        stdout: '',
        stderr:
          'Everybody has to sign in again. Go on? (yes/no) Nothing was changed. To skip the question, add --yes.\n',
      })
    }
    const { io } = terminal()
    ;(io.stdin as unknown as PassThrough).end()
    expect(await scenario(test, () => execute(everyone, io))).toBe(1)
  })

  it.each([
    ['yes', ['yes'], []],
    ['--yes', [], ['--yes']],
  ])('is done by %s', async (_how, answers, flags) => {
    await test.account()
    const { io, said } = terminal(...answers)
    expect(await execute([...everyone, ...flags], io)).toBe(0)
    expect(said.stdout).toMatch(/^\d+ sessions? of \d+ accounts? ended\.\n$/)
  })
})
