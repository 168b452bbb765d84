import { TextLink } from './text-link.tsx';

/** Leads operators to an account. */
export function AccountLink({ id }: { id: string }) {
  return (
    <TextLink to="/operator/accounts/$accountId" params={{ accountId: id }}>
      {id}
    </TextLink>
  );
}
