import { once } from 'node:events'
import { Agent, get } from 'node:http'

/** Requests whose lines in the log are as long as lines get. */
export async function fillLog(url: string, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  let left = count
  const long = `${url}/${'x'.repeat(190)}`
  const worker = async (): Promise<void> => {
    while (left-- > 0) await ask(long, agent)
  }
  await Promise.all(Array.from({ length: 20 }, worker))
  agent.destroy()
}

/** The body of an answer. */
export async function ask(url: string, agent: Agent): Promise<string> {
  const [response] = await once(get(url, { agent }), 'response')
  let body = ''
  for await (const part of response) body += part
  return body
}
