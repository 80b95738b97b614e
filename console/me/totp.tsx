import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Facts } from '../ui/facts.tsx'
import { Fault } from '../ui/fault.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { ConfirmTotp } from './confirm-totp.tsx'
import type { SecurityProps } from './security.tsx'

export function Totp({ of: { totp } }: SecurityProps) {
  const [begun, setBegun] = useState<Output<'account_totp_enrol'> | null>(null)
  const [isAsking, ask] = useState(false)
  const enrol = useSend('account_totp_enrol')
  const begin = async (): Promise<void> => setBegun((await enrol.send({})) ?? null)
  return (
    <section class="section">
      <h2>{security.totp}</h2>
      <p class="soft">{security.totp_about}</p>
      {totp && (
        <Facts
          of={[
            [security.totp_added, <Time key="added" at={totp.confirmed_at} />],
            [
              security.last_used,
              totp.last_used_at ? <Time key="used" at={totp.last_used_at} /> : security.not_used,
            ],
          ]}
        />
      )}
      <Fault text={enrol.error && explain(enrol.error)} />
      <div class="row">
        <Button isBusy={enrol.isBusy} wait={enrol.wait} onClick={() => void begin()}>
          {totp ? security.totp_replace : security.totp_add}
        </Button>
        {totp && (
          <Button kind="danger" onClick={() => ask(true)}>
            {security.totp_remove}
          </Button>
        )}
      </div>
      {begun && <ConfirmTotp begun={begun} onClose={() => setBegun(null)} />}
      {isAsking && <RemoveTotp onClose={() => ask(false)} />}
    </section>
  )
}

function RemoveTotp({ onClose }: { onClose(): void }) {
  const remove = useSend('account_totp_remove', {
    spoils: ['account_sign_in_get'],
    done: () => toast(security.totp_removed),
  })
  const confirm = async (): Promise<void> => {
    if (await remove.send({})) onClose()
  }
  return (
    <Confirm
      title={security.totp_remove_question}
      verb={security.totp_remove}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={remove}
    >
      <p>{security.totp_remove_about}</p>
    </Confirm>
  )
}
