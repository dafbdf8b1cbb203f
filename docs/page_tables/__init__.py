"""The tables of pages that come from committed results: a file for every page, and in it a function for every mark.

``<!-- name -->`` … ``<!-- end -->`` on a page holds what the function of that name gives.
"""
