import { ApiError } from '../../shared/errors.ts';

/**
 * A vendor's error about a field of the chat that stands in for the caller's request, and that the caller has not sent: it is renamed
 * to the caller's own. Other errors pass.
 * @param names the caller's names of the chat's fields, where they differ
 * @param pathOf the caller's path for that of a field that has no other name; undefined: it is the same
 */
export function inCallersNames(
  thrown: unknown,
  names: ReadonlyMap<string, string>,
  pathOf: (param: string) => string | undefined = () => undefined,
): unknown {
  if (!(thrown instanceof ApiError)) return thrown;
  const { code, param, vendorCode, vendorStatus, cause } = thrown;
  const [chatName = ''] = param?.split(/[.[]/, 1) ?? [];
  const name = names.get(chatName) ?? (param === null ? undefined : pathOf(param));
  if (param === null || name === undefined || thrown.status !== 400) return thrown;
  const renamed = thrown.message.replaceAll(`'${param}'`, `'${name}'`);
  const message = names.has(chatName) ? renamed.replaceAll(`'${chatName}'`, `'${name}'`) : renamed;
  return new ApiError(code, message, { param: name, vendorCode, ...(vendorStatus && { vendorStatus }), cause });
}
